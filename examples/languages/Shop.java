// Transactional messages over HTTP in Java 11 or newer, without a library: java Shop.java
//
// The broker is that of MQBROKER_URL, the key that of MQBROKER_API_KEY. In a program of yours a JSON library takes the
// place of `field` and `quoted`, and the database that of `paid`.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Shop {
    static final String URL = System.getenv("MQBROKER_URL"), KEY = System.getenv("MQBROKER_API_KEY");
    static final String TOPIC = "java-orders", PRODUCERS = "java-shop", CONSUMERS = "java-coupons";
    static final HttpClient HTTP = HttpClient.newHttpClient();
    static final int TRIES = 5;
    // The shop's database: the transactions whose order is paid.
    static final Set<String> paid = ConcurrentHashMap.newKeySet();

    public static void main(String[] arguments) throws Exception {
        // 1. The half message is stored before the local transaction begins.
        String first = UUID.randomUUID().toString();
        begin(first, "order 1");
        // 2. The local transaction. 3. Its outcome.
        paid.add(first);
        end(first, "COMMIT", false);
        System.out.println("committed order 1");

        // An order whose end never reaches the broker: another instance of the shop is asked, and knows.
        String lost = UUID.randomUUID().toString();
        begin(lost, "order 2");
        paid.add(lost);
        answerChecks(lost);

        int acked = 0;
        while (acked < 2) {
            acked += consume();
        }
    }

    static void begin(String transaction, String body) throws Exception {
        call("/v1/transactions", "{\"transaction_id\": " + quoted(transaction) + ", \"producer_group\": "
            + quoted(PRODUCERS) + ", \"topic\": " + quoted(TOPIC) + ", \"body\": " + quoted(body) + "}");
    }

    static void end(String transaction, String state, boolean fromCheck) throws Exception {
        call("/v1/transactions/" + transaction + "/end", "{\"producer_group\": " + quoted(PRODUCERS)
            + ", \"state\": " + quoted(state) + ", \"from_transaction_check\": " + fromCheck + "}");
    }

    // Polls for checks until the transaction was asked about. A service does this for ever, in a thread of its own.
    static void answerChecks(String awaited) throws Exception {
        List<String> asked = new ArrayList<>();
        while (!asked.contains(awaited)) {
            String answer = call("/v1/producer-groups/" + PRODUCERS + "/checks/receive", "{\"wait_seconds\": 10}");
            for (String transaction : field(answer, "transaction_id")) {
                String state = paid.contains(transaction) ? "COMMIT" : "UNKNOWN";
                end(transaction, state, true);
                asked.add(transaction);
                System.out.println("checked: " + state);
            }
        }
    }

    // Receives, works, acks: a message that is not acked within 60 s comes again.
    static int consume() throws Exception {
        String group = "/v1/consumer-groups/" + CONSUMERS;
        String received = call(group + "/receive", "{\"topic\": " + quoted(TOPIC) + ", \"wait_seconds\": 10}");
        List<String> bodies = field(received, "body"), handles = field(received, "receipt_handle");
        for (int each = 0; each < handles.size(); each++) {
            System.out.println("received " + bodies.get(each));
            call(group + "/ack", "{\"receipt_handles\": [" + quoted(handles.get(each)) + "]}");
        }
        return handles.size();
    }

    // Repeated with the same ids nothing is stored twice: after a lost connection, and after 429 and 503.
    static String call(String path, String json) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(URL + path))
            .header("Authorization", "Bearer " + KEY)
            .header("Content-Type", "application/json")
            .timeout(Duration.ofSeconds(30))
            .POST(BodyPublishers.ofString(json))
            .build();
        for (int attempt = 1; ; attempt++) {
            try {
                HttpResponse<String> answer = HTTP.send(request, BodyHandlers.ofString());
                boolean passing = answer.statusCode() == 429 || answer.statusCode() == 503;
                if (answer.statusCode() < 300) {
                    return answer.body();
                }
                if (!passing || attempt == TRIES) {
                    throw new IllegalStateException(answer.statusCode() + " " + answer.body());
                }
                Thread.sleep(1000L * answer.headers().firstValueAsLong("Retry-After").orElse(1));
            } catch (IOException broken) {
                if (attempt == TRIES) {
                    throw broken;
                }
                Thread.sleep(200L * attempt);
            }
        }
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    // The values of a text field, in their order.
    static List<String> field(String json, String name) {
        List<String> found = new ArrayList<>();
        Matcher matcher = Pattern.compile(quoted(name) + ":\\s*\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(json);
        while (matcher.find()) {
            found.add(matcher.group(1));
        }
        return found;
    }
}
