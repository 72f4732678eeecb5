import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.CommitMode;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.vertx.VertxParallelEoSStreamProcessor;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.PoolOptions;
import io.vertx.core.http.RequestOptions;
import io.vertx.ext.web.client.WebClient;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka → signed POST with Confluent's Parallel Consumer and its module for Vert.x: decode, render, sign, post, and commit
 * what is answered. README.md says why each setting is as it is. The environment says what to do.
 */
public final class Posts {
  private static final long TIMEOUT_MS = 5_000;

  private final Map<String, String> env = System.getenv();
  private final boolean ready = env.get("FORM").equals("json");
  /** Null: what fails goes to a topic. */
  private final String retryMs = env.get("RETRY_MS");
  private final Calls calls = ready ? null : new Calls(env.get("SCHEMA_REGISTRY_URL"));
  private final List<String> urls = List.of(env.get("URLS").split(","));
  private final Map<String, RequestOptions> endpoints =
      urls.stream().collect(Collectors.toMap(url -> url, Posts::endpoint));
  private final ThreadLocal<Mac> macs = ThreadLocal.withInitial(this::mac);
  private final KafkaProducer<byte[], byte[]> deadLetters;
  private final HttpClient client;

  private Posts() {
    int inFlight = Integer.parseInt(env.get("IN_FLIGHT"));
    var vertx = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(1).setPreferNativeTransport(true));
    var pool = new PoolOptions().setHttp1MaxSize(inFlight).setMaxWaitQueueSize(-1);
    client = vertx.createHttpClient(new HttpClientOptions().setTcpNoDelay(true).setKeepAlive(true), pool);
    deadLetters = new KafkaProducer<>(kafka(), new ByteArraySerializer(), new ByteArraySerializer());

    var settings = kafka();
    settings.put("group.id", env.get("GROUP_ID"));
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", "false");
    settings.put("max.poll.records", "5000");
    var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    var options =
        ParallelConsumerOptions.<byte[], byte[]>builder()
            .consumer(consumer)
            .ordering(ProcessingOrder.UNORDERED)
            .maxConcurrency(inFlight)
            .commitMode(CommitMode.PERIODIC_CONSUMER_ASYNCHRONOUS)
            .defaultMessageRetryDelay(Duration.ofMillis(retryMs == null ? 1_000 : Long.parseLong(retryMs)))
            .build();
    var processor =
        new VertxParallelEoSStreamProcessor<byte[], byte[]>(vertx, WebClient.wrap(client), options);
    processor.subscribe(List.of(env.get("TOPIC")));
    processor.vertxFuture(context -> post(context.getSingleConsumerRecord()));
  }

  public static void main(String[] args) {
    new Posts();
  }

  /** What fails is kept in a topic of its own, so that the record is finished and its offset can be committed. */
  private Future<?> post(ConsumerRecord<byte[], byte[]> record) {
    String id;
    byte[] body;
    RequestOptions endpoint;
    if (ready) {
      id = header(record, "id");
      body = record.value();
      endpoint = endpoints.get(header(record, "url"));
    } else {
      var call = calls.decode(record.value());
      id = call.get("messageId").toString();
      body = Calls.render(call).getBytes(StandardCharsets.UTF_8);
      endpoint = endpoints.get(urls.get(urls.size() == 1 ? 0 : Calls.endpointOf(call)));
    }
    var signature = hex(macs.get().doFinal(body));
    return client
        .request(endpoint)
        .compose(
            request ->
                request
                    .putHeader("Content-Type", "application/json")
                    .putHeader("X-Signature", signature)
                    .putHeader("Idempotency-Key", id + ":crm")
                    .send(Buffer.buffer(body)))
        .compose(Posts::answered)
        .recover(problem -> retryMs == null ? keep(record) : Future.failedFuture(problem));
  }

  private static Future<Void> answered(HttpClientResponse response) {
    int status = response.statusCode();
    return status >= 200 && status < 300 ? Future.succeededFuture() : Future.failedFuture("status " + status);
  }

  private Future<Void> keep(ConsumerRecord<byte[], byte[]> record) {
    var topic = env.get("TOPIC") + ".failed";
    return Future.future(
        promise ->
            deadLetters.send(
                new ProducerRecord<>(topic, record.key(), record.value()),
                (metadata, problem) -> {
                  if (problem == null) promise.complete();
                  else promise.fail(problem);
                }));
  }

  private Properties kafka() {
    var settings = new Properties();
    settings.put("bootstrap.servers", env.get("KAFKA_BROKERS"));
    return settings;
  }

  private static RequestOptions endpoint(String url) {
    var uri = URI.create(url);
    return new RequestOptions()
        .setMethod(HttpMethod.POST)
        .setHost(uri.getHost())
        .setPort(uri.getPort())
        .setURI(uri.getPath())
        .setTimeout(TIMEOUT_MS);
  }

  private static String header(ConsumerRecord<byte[], byte[]> record, String name) {
    Header header = record.headers().lastHeader(name);
    return new String(header.value(), StandardCharsets.ISO_8859_1);
  }

  private Mac mac() {
    try {
      var mac = Mac.getInstance("HmacSHA1");
      mac.init(new SecretKeySpec(env.get("SHARED_SECRET").getBytes(StandardCharsets.UTF_8), "HmacSHA1"));
      return mac;
    } catch (GeneralSecurityException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }
}
