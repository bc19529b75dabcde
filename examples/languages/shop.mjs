// @ts-check
// Transactional messages over HTTP in Node 18 or newer, without a package: node shop.mjs
//
// The types are in comments, as TypeScript reads them. The broker is that of MQBROKER_URL, the key that of
// MQBROKER_API_KEY. In a program of yours the database takes the place of `paid`.
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";

/** @typedef {"COMMIT" | "ROLLBACK" | "UNKNOWN"} State */
/** @typedef {{message: {message_id: string, topic: string, body?: string}, receipt_handle: string}} Delivery */

const URL = process.env.MQBROKER_URL ?? "http://127.0.0.1:8000";
const KEY = process.env.MQBROKER_API_KEY ?? "";
const TOPIC = "node-orders", PRODUCERS = "node-shop", CONSUMERS = "node-coupons";
const TRIES = 5;
/** The shop's database: the transactions whose order is paid. @type {Set<string>} */
const paid = new Set();

/**
 * Repeated with the same ids nothing is stored twice: after a lost connection, and after 429 and 503.
 * @param {string} path @param {object} document @returns {Promise<any>}
 */
async function call(path, document) {
  for (let attempt = 1; ; attempt++) {
    let answer;
    try {
      answer = await fetch(URL + path, {
        method: "POST",
        headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json" },
        body: JSON.stringify(document),
        signal: AbortSignal.timeout(30_000),
      });
    } catch (broken) {
      if (attempt === TRIES) throw broken;
      await setTimeout(200 * attempt);
      continue;
    }
    const body = await answer.text();
    if (answer.ok) return JSON.parse(body);
    const passing = answer.status === 429 || answer.status === 503;
    if (!passing || attempt === TRIES) throw new Error(`${answer.status} ${body}`);
    await setTimeout(1000 * Number(answer.headers.get("retry-after") ?? 1));
  }
}

/** @param {string} transaction @param {string} body */
const begin = (transaction, body) =>
  call("/v1/transactions", { transaction_id: transaction, producer_group: PRODUCERS, topic: TOPIC, body });

/** @param {string} transaction @param {State} state @param {boolean} fromCheck */
const end = (transaction, state, fromCheck = false) =>
  call(`/v1/transactions/${transaction}/end`, {
    producer_group: PRODUCERS,
    state,
    from_transaction_check: fromCheck,
  });

/**
 * Polls for checks until the transaction was asked about. A service does this for ever.
 * @param {string} awaited
 */
async function answerChecks(awaited) {
  for (let isAsked = false; !isAsked; ) {
    const { transactions } = await call(`/v1/producer-groups/${PRODUCERS}/checks/receive`, { wait_seconds: 10 });
    for (const { transaction_id } of transactions) {
      const state = paid.has(transaction_id) ? "COMMIT" : "UNKNOWN";
      await end(transaction_id, state, true);
      console.log(`checked: ${state}`);
      isAsked ||= transaction_id === awaited;
    }
  }
}

/** Receives, works, acks: a message that is not acked within 60 s comes again. */
async function consume() {
  const group = `/v1/consumer-groups/${CONSUMERS}`;
  /** @type {{messages: Delivery[]}} */
  const { messages } = await call(`${group}/receive`, { topic: TOPIC, wait_seconds: 10 });
  for (const delivery of messages) {
    console.log(`received ${delivery.message.body}`);
    await call(`${group}/ack`, { receipt_handles: [delivery.receipt_handle] });
  }
  return messages.length;
}

// 1. The half message is stored before the local transaction begins. 2. The local transaction. 3. Its outcome.
const first = randomUUID();
await begin(first, "order 1");
paid.add(first);
await end(first, "COMMIT");
console.log("committed order 1");

// An order whose end never reaches the broker: another instance of the shop is asked, and knows.
const lost = randomUUID();
await begin(lost, "order 2");
paid.add(lost);
await answerChecks(lost);

for (let acked = 0; acked < 2; ) acked += await consume();
