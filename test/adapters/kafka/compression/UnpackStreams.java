import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Scanner;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.utils.BufferSupplier;

/** Of each line, `<codec> <base64>`: what Kafka's own client reads, as base64, or `refused` and why. */
public class UnpackStreams {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] line = lines.nextLine().split(" ", -1);
            CompressionType type = CompressionType.forId(Integer.parseInt(line[0]));
            ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(line[1]));
            try (InputStream in = Compression.of(type).build().wrapForInput(bytes, (byte) 2, BufferSupplier.create())) {
                System.out.println("read " + Base64.getEncoder().encodeToString(in.readAllBytes()));
            } catch (Throwable error) {
                System.out.println("refused " + String.valueOf(error.getMessage()).replace('\n', ' '));
            }
        }
    }
}
