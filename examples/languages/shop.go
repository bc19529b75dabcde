// Transactional messages over HTTP in Go, by its standard library: go run shop.go
//
// The broker is that of MQBROKER_URL, the key that of MQBROKER_API_KEY. In a program of yours the database takes the place
// of paid.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	topic     = "go-orders"
	producers = "go-shop"
	consumers = "go-coupons"
	tries     = 5
)

type document map[string]any

// What of an answer is read here.
type answer struct {
	Messages []struct {
		Message struct {
			Body string `json:"body"`
		} `json:"message"`
		ReceiptHandle string `json:"receipt_handle"`
	} `json:"messages"`
	Transactions []struct {
		TransactionID string `json:"transaction_id"`
	} `json:"transactions"`
}

var (
	client = http.Client{Timeout: 30 * time.Second}
	// The shop's database: the transactions whose order is paid.
	paid = map[string]bool{}
)

// call repeats a request with the same ids, which stores nothing twice: after a lost connection, and after 429 and 503.
func call(path string, given document) answer {
	body, _ := json.Marshal(given)
	for attempt := 1; ; attempt++ {
		found, pause, err := once(path, body)
		if err == nil {
			return found
		}
		if pause == 0 || attempt == tries {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		time.Sleep(pause)
	}
}

// once returns the answer, or an error and the pause before another try; none where a repeat would be refused, too.
func once(path string, body []byte) (found answer, pause time.Duration, err error) {
	request, err := http.NewRequest(http.MethodPost, os.Getenv("MQBROKER_URL")+path, bytes.NewReader(body))
	if err != nil {
		return found, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("MQBROKER_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return found, 200 * time.Millisecond, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return found, 200 * time.Millisecond, err
	}
	if response.StatusCode < 300 {
		return found, 0, json.Unmarshal(content, &found)
	}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		pause = time.Duration(max(seconds, 1)) * time.Second
	}
	return found, pause, fmt.Errorf("%d %s", response.StatusCode, content)
}

func begin(transaction, body string) {
	call("/v1/transactions", document{
		"transaction_id": transaction, "producer_group": producers, "topic": topic, "body": body})
}

func end(transaction, state string, fromCheck bool) {
	call("/v1/transactions/"+transaction+"/end", document{
		"producer_group": producers, "state": state, "from_transaction_check": fromCheck})
}

// answerChecks polls until the transaction was asked about. A service does this for ever.
func answerChecks(awaited string) {
	for isAsked := false; !isAsked; {
		found := call("/v1/producer-groups/"+producers+"/checks/receive", document{"wait_seconds": 10})
		for _, asked := range found.Transactions {
			state := "UNKNOWN"
			if paid[asked.TransactionID] {
				state = "COMMIT"
			}
			end(asked.TransactionID, state, true)
			fmt.Println("checked:", state)
			isAsked = isAsked || asked.TransactionID == awaited
		}
	}
}

// consume receives, works and acks: a message that is not acked within 60 s comes again.
func consume() int {
	group := "/v1/consumer-groups/" + consumers
	found := call(group+"/receive", document{"topic": topic, "wait_seconds": 10})
	for _, delivery := range found.Messages {
		fmt.Println("received", delivery.Message.Body)
		call(group+"/ack", document{"receipt_handles": []string{delivery.ReceiptHandle}})
	}
	return len(found.Messages)
}

func uuid() string {
	id := make([]byte, 16)
	rand.Read(id)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func main() {
	// 1. The half message is stored before the local transaction begins. 2. The local transaction. 3. Its outcome.
	first := uuid()
	begin(first, "order 1")
	paid[first] = true
	end(first, "COMMIT", false)
	fmt.Println("committed order 1")

	// An order whose end never reaches the broker: another instance of the shop is asked, and knows.
	lost := uuid()
	begin(lost, "order 2")
	paid[lost] = true
	answerChecks(lost)
	for acked := 0; acked < 2; {
		acked += consume()
	}
}
