import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

/** Reads calls as they are in Kafka (Confluent's framing, Avro), and renders a `track` as Postrider does. */
final class Calls {
  private static final int FRAME_BYTES = 5;
  private static final DateTimeFormatter TIMESTAMP =
      DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

  private final String registry;
  private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new ConcurrentHashMap<>();
  private final ThreadLocal<BinaryDecoder> decoders = new ThreadLocal<>();

  Calls(String registry) {
    this.registry = registry;
  }

  GenericRecord decode(byte[] value) {
    int id = ByteBuffer.wrap(value).getInt(1);
    var reader = readers.computeIfAbsent(id, this::reader);
    var decoder =
        DecoderFactory.get().binaryDecoder(value, FRAME_BYTES, value.length - FRAME_BYTES, decoders.get());
    decoders.set(decoder);
    try {
      return reader.read(null, decoder);
    } catch (IOException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private GenericDatumReader<GenericRecord> reader(int id) {
    var question = HttpRequest.newBuilder(URI.create(registry + "/schemas/ids/" + id)).build();
    try {
      var answer = HttpClient.newHttpClient().send(question, BodyHandlers.ofString()).body();
      var schema = new Schema.Parser().parse(new ObjectMapper().readTree(answer).get("schema").asText());
      return new GenericDatumReader<>(schema, schema, new GenericData());
    } catch (IOException | InterruptedException problem) {
      throw new IllegalStateException(problem);
    }
  }

  static String render(GenericRecord call) {
    var text = new StringBuilder(512).append("{\"version\":1,\"type\":\"track\",\"userId\":");
    quote(text, call.get("userId").toString());
    text.append(",\"timestamp\":\"");
    TIMESTAMP.formatTo(Instant.ofEpochMilli((Long) call.get("timestamp")), text);
    text.append("\",\"event\":");
    quote(text, call.get("event").toString());
    text.append(",\"properties\":").append(call.get("properties"));
    text.append(",\"context\":").append(call.get("context")).append(",\"messageId\":");
    quote(text, call.get("messageId").toString());
    return text.append('}').toString();
  }

  /** The sources are numbered: `source-3` goes to the fourth URL. */
  static int endpointOf(GenericRecord call) {
    var source = call.get("sourceId").toString();
    return Integer.parseInt(source.substring(source.lastIndexOf('-') + 1));
  }

  private static void quote(StringBuilder text, String value) {
    text.append('"');
    for (int at = 0; at < value.length(); at++) {
      char each = value.charAt(at);
      if (each == '"' || each == '\\') text.append('\\').append(each);
      else if (each < ' ') text.append(String.format("\\u%04x", (int) each));
      else text.append(each);
    }
    text.append('"');
  }
}
