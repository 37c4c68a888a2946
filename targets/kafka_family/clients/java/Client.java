import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.InvalidOffsetException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Apache Kafka's own clients behind two pipes of lines; targets/kafka_family/clients/java_work.py asks.
 *
 * A line is words with one space between them; a record's value is Base64. What is asked, and what is told:
 *
 *     producer NAME KEY=VALUE ...                          nothing; it makes a producer with these settings
 *     send NAME NUMBER TOPIC PARTITION TIME_MS VALUE ...   of each record, in any order and at any time
 *                                                            sent NUMBER OFFSET          -1 without an answer
 *                                                            unsent NUMBER ERROR         it is in no batch
 *                                                            failed NUMBER CODE ERROR    of its batch
 *     consumer KEY=VALUE ...                               nothing; it makes the consumer
 *     assign TOPIC PARTITION OFFSET ...                    nothing; what was fetched for earlier ones is dropped
 *     poll MS                                              record TOPIC PARTITION OFFSET VALUE ...
 *                                                          watermark TOPIC PARTITION OFFSET
 *                                                          or refused ERROR TOPIC PARTITION ...
 *                                                          and then: polled
 *
 * The first line that it tells is `ready`. It ends as soon as nobody can ask any more, and waits for nothing then.
 *
 * Source: Apache Kafka 3.9.1, KafkaProducer.doSend, Sender, FetchCollector, SubscriptionState.partitionLag.
 */
public final class Client {
    private static final String NO_CODE = "-";
    /** As in harness/keys.py. */
    private static final String TEXT_HEADER = "fencepost";

    private final BufferedReader asked;
    private final BufferedWriter told;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private KafkaConsumer<byte[], byte[]> consumer;

    private Client(BufferedReader asked, BufferedWriter told) {
        this.asked = asked;
        this.told = told;
    }

    /** Serve the two pipes whose handles these are: standard input has another purpose. */
    public static void main(String[] handles) {
        int code = 1;
        try {
            new Client(
                    new BufferedReader(new InputStreamReader(
                            new FileInputStream("/dev/fd/" + handles[0]), StandardCharsets.US_ASCII)),
                    new BufferedWriter(new OutputStreamWriter(
                            new FileOutputStream("/dev/fd/" + handles[1]), StandardCharsets.US_ASCII)))
                    .serve();
            code = 0;
        } catch (Throwable error) {
            error.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(code);
        }
    }

    private void serve() throws IOException {
        tell("ready");
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            // An empty value at the end of the line is a word too.
            String[] words = line.split(" ", -1);
            switch (words[0]) {
                case "producer" -> producers.put(words[1], new KafkaProducer<>(
                        settings(words, 2), new ByteArraySerializer(), new ByteArraySerializer()));
                case "send" -> send(producers.get(words[1]), words);
                case "consumer" -> consumer = new KafkaConsumer<>(
                        settings(words, 1), new ByteArrayDeserializer(), new ByteArrayDeserializer());
                case "assign" -> assign(words);
                case "poll" -> poll(Duration.ofMillis(Long.parseLong(words[1])));
                default -> throw new IllegalArgumentException(
                        "asked: '" + line + "'; expected producer, send, consumer, assign or poll");
            }
        }
    }

    private static Properties settings(String[] words, int from) {
        Properties found = new Properties();
        for (int at = from; at < words.length; at++) {
            String[] pair = words[at].split("=", 2);
            found.setProperty(pair[0], pair[1]);
        }
        return found;
    }

    // --- producer -----------------------------------------------------------------------------------------------
    /** Send records one after another; once one is refused, the others are not tried: each may wait as long. */
    private void send(KafkaProducer<byte[], byte[]> producer, String[] words) {
        String refused = null;
        for (int at = 2; at < words.length; at += 5) {
            String number = words[at];
            if (refused == null) {
                byte[] text = Base64.getDecoder().decode(words[at + 4]);
                boolean deletes = isTombstone(text);
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                        words[at + 1], Integer.valueOf(words[at + 2]), Long.valueOf(words[at + 3]),
                        key(text), deletes ? null : text);
                if (deletes) {
                    record.headers().add(TEXT_HEADER, text);
                }
                refused = refusal(producer, number, record);
            }
            if (refused != null) {
                tell("unsent", number, refused);
            }
        }
    }

    /** The key that a value says: "k2" of "k2/m1.0"; null if it says none. */
    private static byte[] key(byte[] value) {
        int end = value.length > 0 && value[0] == 'k' ? 1 : value.length;
        while (end < value.length && value[end] >= '0' && value[end] <= '9') {
            end++;
        }
        return end > 1 && end < value.length && value[end] == '/' ? Arrays.copyOf(value, end) : null;
    }

    /** Whether a value says that its key is deleted, as "k2/~m1.0" does: it is sent as a header of a null. */
    private static boolean isTombstone(byte[] value) {
        byte[] key = key(value);
        return key != null && value.length > key.length + 1 && value[key.length + 1] == '~';
    }

    /** Hand a record to the producer; return why it was put into no batch, null if it was. */
    private String refusal(
            KafkaProducer<byte[], byte[]> producer, String number, ProducerRecord<byte[], byte[]> record) {
        Thread caller = Thread.currentThread();
        String[] refused = {null};
        try {
            producer.send(record, (metadata, error) -> {
                if (error == null) {
                    tell("sent", number, Long.toString(metadata.hasOffset() ? metadata.offset() : -1));
                } else if (Thread.currentThread() == caller) {
                    // Only send() itself calls back from its caller's thread, before the record is in a batch.
                    refused[0] = name(error);
                } else {
                    tell("failed", number, code(error), name(error));
                }
            });
        } catch (KafkaException error) {
            refused[0] = name(error);
        }
        return refused[0];
    }

    /** The number of a broker's error. A batch that was given up has the same class as an answer: it has none. */
    private static String code(Exception error) {
        Errors known = Errors.forException(error);
        boolean own = known == Errors.UNKNOWN_SERVER_ERROR || error instanceof TimeoutException;
        return own ? NO_CODE : Short.toString(known.code());
    }

    // --- consumer -----------------------------------------------------------------------------------------------
    private void assign(String[] words) {
        Map<TopicPartition, Long> positions = new LinkedHashMap<>();
        for (int at = 1; at < words.length; at += 3) {
            positions.put(
                    new TopicPartition(words[at], Integer.parseInt(words[at + 1])), Long.valueOf(words[at + 2]));
        }
        // A partition that stays assigned would keep what was fetched of it.
        consumer.assign(List.of());
        consumer.assign(positions.keySet());
        positions.forEach((place, offset) -> consumer.seek(place, (long) offset));
    }

    /** A record's value; of a tombstone what its header says, nothing if it has none. */
    private static byte[] text(ConsumerRecord<byte[], byte[]> record) {
        if (record.value() != null) {
            return record.value();
        }
        Header header = record.headers().lastHeader(TEXT_HEADER);
        return header == null ? new byte[0] : header.value();
    }

    private void poll(Duration wait) {
        List<String> lines = new ArrayList<>();
        try {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(wait);
            for (TopicPartition place : polled.partitions()) {
                for (ConsumerRecord<byte[], byte[]> record : polled.records(place)) {
                    String text = Base64.getEncoder().encodeToString(text(record));
                    lines.add(line("record", words(place), Long.toString(record.offset()), text));
                }
                highWatermark(place).ifPresent(
                        offset -> lines.add(line("watermark", words(place), Long.toString(offset))));
            }
        } catch (InvalidOffsetException error) {
            List<String> said = new ArrayList<>(List.of("refused", name(error)));
            error.partitions().forEach(place -> said.add(words(place)));
            lines.add(String.join(" ", said));
        } catch (KafkaException error) {
            lines.add(line("refused", name(error)));
        }
        lines.add("polled");
        tell(String.join("\n", lines));
    }

    /** That of the answer that brought the last records: its distance from the position is the lag. */
    private OptionalLong highWatermark(TopicPartition place) {
        try {
            long position = consumer.position(place, Duration.ZERO);
            OptionalLong lag = consumer.currentLag(place);
            return lag.isPresent() ? OptionalLong.of(position + lag.getAsLong()) : lag;
        } catch (TimeoutException error) { // the position awaits a check of its epoch
            return OptionalLong.empty();
        }
    }

    // --- lines --------------------------------------------------------------------------------------------------
    private static String words(TopicPartition place) {
        return place.topic() + " " + place.partition();
    }

    private static String name(Exception error) {
        return error.getClass().getSimpleName();
    }

    private static String line(String... words) {
        return String.join(" ", words);
    }

    /** Tell a line at once, whichever thread calls. */
    private synchronized void tell(String... words) {
        try {
            told.write(line(words) + "\n");
            told.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
