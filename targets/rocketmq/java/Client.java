import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;
import org.apache.rocketmq.remoting.exception.RemotingException;
import org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException;

/**
 * RocketMQ's own clients behind two pipes of lines; targets/rocketmq/clients/library.py asks.
 *
 * A line is words with one space between them; values and remarks are Base64. Each question has one answer, which
 * begins with the number of the question:
 *
 *     NUMBER send TOPIC QUEUE WITHIN_MS VALUE     NUMBER sent STATUS OFFSET        the answer of a broker
 *                                                 NUMBER refused CODE REMARK       a broker's error
 *                                                 NUMBER unsent ERROR REMARK       no broker was asked
 *                                                 NUMBER failed ERROR REMARK       one may have been
 *     NUMBER assign TOPIC QUEUE OFFSET ...        NUMBER assigned
 *                                                 NUMBER failed ERROR REMARK
 *     NUMBER poll WITHIN_MS BYTES_MAX             NUMBER polled TOPIC QUEUE OFFSET VALUE ...
 *                                                 NUMBER failed ERROR REMARK
 *
 * The first line that it tells is `ready`, once the library has started. It ends as soon as nobody can ask any
 * more, and waits for nothing then.
 *
 * Source: DefaultMQProducerImpl.send and sendKernelImpl, NettyRemotingClient.invokeSync,
 *         MQClientInstance.updateTopicRouteInfoFromNameServer, DefaultLitePullConsumerImpl, 5.5.0.
 */
public final class Client {
    /** So many records come with one poll, about. */
    private static final int RECORDS_MAX = 500;
    /** Who leads is asked so often; by default every 30 seconds. */
    private static final int ROUTES_MS = 1000;
    private static final int REMARK_MAX = 300;

    private final String role;
    private final String name;
    private final String nameServers;
    private final String group;
    private final BufferedReader asked;
    private final BufferedWriter told;
    private DefaultMQProducer producer;
    private DefaultLitePullConsumer consumer;

    private Client(String[] args) throws IOException {
        role = args[0];
        name = args[1];
        nameServers = args[2];
        group = args[3];
        asked = new BufferedReader(
                new InputStreamReader(new FileInputStream("/dev/fd/" + args[4]), StandardCharsets.US_ASCII));
        told = new BufferedWriter(
                new OutputStreamWriter(new FileOutputStream("/dev/fd/" + args[5]), StandardCharsets.US_ASCII));
    }

    /**
     * Arguments: producer or consumer, its name, the name servers, the brokers' group, the handle to read, the
     * handle to write.
     */
    public static void main(String[] args) {
        int code = 1;
        try {
            new Client(args).serve();
            code = 0;
        } catch (Throwable error) {
            error.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(code);
        }
    }

    private void serve() throws Exception {
        switch (role) {
            case "producer" -> producer();
            case "consumer" -> consumer();
            default -> throw new IllegalArgumentException(role + "; expected producer or consumer");
        }
        tell("ready");
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            // An empty value at the end of the line is a word too.
            String[] words = line.split(" ", -1);
            tell(words[0] + " " + answer(words));
        }
    }

    private String answer(String[] words) {
        try {
            return switch (words[1]) {
                case "send" -> send(words);
                case "assign" -> assign(words);
                case "poll" -> poll(Long.parseLong(words[2]), Long.parseLong(words[3]));
                default -> throw new IllegalArgumentException(words[1] + "; expected send, assign or poll");
            };
        } catch (Exception error) {
            return failed("failed", error);
        }
    }

    // --- producer -----------------------------------------------------------------------------------------------
    /** Send a record to a queue, once: the library sends none again of which the queue was chosen. */
    private String send(String[] words) throws Exception {
        Message message = new Message(words[2], Base64.getDecoder().decode(words[5]));
        try {
            SendResult sent = producer().send(message, queue(words, 2), Long.parseLong(words[4]));
            return "sent " + sent.getSendStatus() + " " + sent.getQueueOffset();
        } catch (MQBrokerException error) {
            return "refused " + error.getResponseCode() + " " + encoded(error.getErrorMessage());
        } catch (MQClientException | RemotingConnectException | RemotingTooMuchRequestException error) {
            return failed("unsent", error);
        } catch (IllegalStateException error) {
            // So the library says that the name server, which it asks first, was not reached.
            return failed(error.getCause() instanceof RemotingException ? "unsent" : "failed", error);
        }
    }

    private DefaultMQProducer producer() throws MQClientException {
        if (producer == null) {
            DefaultMQProducer made = new DefaultMQProducer("fencepost-" + name);
            made.setNamesrvAddr(nameServers);
            made.setInstanceName(name);
            made.setPollNameServerInterval(ROUTES_MS);
            // A log is to have a value as it was sent.
            made.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            made.start();
            producer = made;
        }
        return producer;
    }

    // --- consumer -----------------------------------------------------------------------------------------------
    private String assign(String[] words) throws Exception {
        Map<MessageQueue, Long> positions = new LinkedHashMap<>();
        for (int at = 2; at < words.length; at += 3) {
            positions.put(queue(words, at), Long.valueOf(words[at + 2]));
        }
        consumer().assign(positions.keySet());
        for (Map.Entry<MessageQueue, Long> each : positions.entrySet()) {
            consumer().seek(each.getKey(), each.getValue());
        }
        return "assigned";
    }

    /** Return what came, and what more there is already. */
    private String poll(long withinMs, long bytesMax) throws Exception {
        StringBuilder line = new StringBuilder("polled");
        long bytes = 0;
        List<MessageExt> found = consumer().poll(withinMs);
        for (int count = 0; !found.isEmpty(); found = consumer().poll(0)) {
            for (MessageExt each : found) {
                line.append(' ').append(each.getTopic()).append(' ').append(each.getQueueId());
                line.append(' ').append(each.getQueueOffset());
                line.append(' ').append(Base64.getEncoder().encodeToString(each.getBody()));
                bytes += each.getBody().length;
            }
            count += found.size();
            if (count >= RECORDS_MAX || bytes >= bytesMax) {
                break;
            }
        }
        return line.toString();
    }

    private DefaultLitePullConsumer consumer() throws MQClientException {
        if (consumer == null) {
            DefaultLitePullConsumer made = new DefaultLitePullConsumer("fencepost-" + name);
            made.setNamesrvAddr(nameServers);
            made.setInstanceName(name);
            made.setPollNameServerInterval(ROUTES_MS);
            made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            made.setAutoCommit(false);
            made.start();
            consumer = made;
        }
        return consumer;
    }

    // --- lines --------------------------------------------------------------------------------------------------
    private MessageQueue queue(String[] words, int at) {
        return new MessageQueue(words[at], group, Integer.parseInt(words[at + 1]));
    }

    private static String failed(String how, Exception error) {
        return how + " " + error.getClass().getSimpleName() + " " + encoded(error.getMessage());
    }

    private static String encoded(String remark) {
        String shown = String.valueOf(remark);
        shown = shown.substring(0, Math.min(shown.length(), REMARK_MAX));
        return Base64.getEncoder().encodeToString(shown.getBytes(StandardCharsets.UTF_8));
    }

    private void tell(String line) throws IOException {
        told.write(line + "\n");
        told.flush();
    }
}
