// RocketMQ's Node client, told what to do by lines of JSON, as client.py beside it.
const { createInterface } = require('node:readline');
const { Producer, SimpleConsumer, PushConsumer, FilterExpression, ConsumeResult } = require('rocketmq-client-nodejs');

const [address, key, secret, tls] = process.argv.slice(2);
const FILTER_SQL = 2;
const RESOLUTIONS = { UNKNOWN: 0, COMMIT: 1, ROLLBACK: 2 };
const quiet = { info() {}, warn() {}, debug() {}, error(...words) { if (process.env.LOUD) console.error(...words); } };
const shared = {
  endpoints: address, namespace: '', sslEnabled: tls === 'tls', requestTimeout: 10000, logger: quiet,
  sessionCredentials: { accessKey: key, accessSecret: secret },
};
const clients = {};
const transactions = {};
let held = [];
const say = line => console.log(JSON.stringify(line));
const pause = seconds => new Promise(resolve => setTimeout(resolve, seconds * 1000));

const shown = message => ({
  topic: message.topic, message_id: message.messageId, body: message.body.toString('base64'), tag: message.tag ?? null,
  keys: [...(message.keys ?? [])].sort(), properties: Object.fromEntries(message.properties),
  group: message.messageGroup ?? null, attempt: message.deliveryAttempt,
});

const messageOf = command => {
  const message = { topic: command.topic, body: Buffer.from(command.body, 'base64') };
  if (command.tag != null) message.tag = command.tag;
  if (command.group != null) message.messageGroup = command.group;
  if (command.deliver_at != null) message.deliveryTimestamp = new Date(command.deliver_at * 1000);
  if (command.keys) message.keys = command.keys;
  if (command.properties) message.properties = new Map(Object.entries(command.properties));
  return message;
};

const expressionOf = command =>
  'sql' in command ? new FilterExpression(command.sql, FILTER_SQL) : new FilterExpression(command.filter ?? '*');

const DO = {
  async produce(command) {
    const checker = {
      async check(message) {
        say({ event: 'checked', ...shown(message) });
        return RESOLUTIONS[command.answer];
      },
    };
    clients.producer = new Producer({ ...shared, topics: command.topics, checker });
    await clients.producer.startup();
  },
  async send(command) {
    const receipt = await clients.producer.send(messageOf(command));
    return { message_id: receipt.messageId, recall_handle: receipt.recallHandle };
  },
  async begin(command) {
    const transaction = clients.producer.beginTransaction();
    const receipt = await clients.producer.send(messageOf(command), transaction);
    transactions[receipt.transactionId] = transaction;
    return { message_id: receipt.messageId, transaction_id: receipt.transactionId };
  },
  async end(command) {
    const transaction = transactions[command.transaction_id];
    await (command.state === 'COMMIT' ? transaction.commit() : transaction.rollback());
  },
  async recall(command) {
    const receipt = await clients.producer.recallMessage(command.topic, command.recall_handle);
    return { message_id: receipt.messageId };
  },
  async subscribe(command) {
    const subscriptions = new Map([[command.topic, expressionOf(command)]]);
    const own = { consumerGroup: command.group, subscriptions, awaitDuration: command.wait * 1000 };
    clients.simple = new SimpleConsumer({ ...shared, ...own });
    await clients.simple.startup();
  },
  async receive(command) {
    held = await clients.simple.receive(32, command.invisible * 1000);
    if (command.ack ?? true) for (const message of held) await clients.simple.ack(message);
    return { messages: held.map(shown) };
  },
  async extend(command) {
    for (const message of held) await clients.simple.changeInvisibleDuration(message, command.invisible * 1000);
  },
  async push(command) {
    const messageListener = {
      async consume(message) {
        say({ event: 'consumed', ...shown(message) });
        await pause(command.seconds ?? 0);
        const fails = (command.fails ?? []).includes(message.body.toString('base64'));
        return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
      },
    };
    const subscriptions = new Map([[command.topic, expressionOf(command)]]);
    clients.push = new PushConsumer({ ...shared, consumerGroup: command.group, subscriptions, messageListener });
    await clients.push.startup();
  },
  async stop(command) {
    await clients[command.client].shutdown();
    delete clients[command.client];
  },
};

(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
      say({ answer: (await DO[command.do](command)) ?? {} });
    } catch (problem) {
      say({ failed: `${problem?.name}: ${problem?.message} ${problem?.code ?? ''}` });
    }
  }
  process.exit(0);
})();
