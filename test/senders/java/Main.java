// Sends a call of each type, and ends once each of them was accepted or given up.
import com.segment.analytics.Analytics;
import com.segment.analytics.Callback;
import com.segment.analytics.messages.AliasMessage;
import com.segment.analytics.messages.GroupMessage;
import com.segment.analytics.messages.IdentifyMessage;
import com.segment.analytics.messages.Message;
import com.segment.analytics.messages.MessageBuilder;
import com.segment.analytics.messages.PageMessage;
import com.segment.analytics.messages.ScreenMessage;
import com.segment.analytics.messages.TrackMessage;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

class Main {
  static class Results implements Callback {
    final CountDownLatch open = new CountDownLatch(6);
    volatile Throwable failed;

    public void success(Message call) {
      open.countDown();
    }

    public void failure(Message call, Throwable error) {
      failed = error;
      open.countDown();
    }
  }

  public static void main(String[] args) throws InterruptedException {
    Results results = new Results();
    Analytics analytics = Analytics.builder(System.getenv("WRITE_KEY"))
        .endpoint(System.getenv("COLLECTOR"))
        .callback(results)
        .build();

    List<MessageBuilder<?, ?>> calls = List.of(
        IdentifyMessage.builder().userId("u-1").traits(Map.of("plan", "pro", "name", "Jürgen 🚲")),
        TrackMessage.builder("Order Completed").userId("u-1").properties(Map.of("total", 12.5, "note", "日本")),
        PageMessage.builder("Products").userId("u-1").properties(Map.of("url", "https://shop.example/products")),
        ScreenMessage.builder("Home").userId("u-1").properties(Map.of("from", "start")),
        GroupMessage.builder("g-1").userId("u-1").traits(Map.of("seats", 5)),
        AliasMessage.builder("u-1").userId("u-2"));
    for (MessageBuilder<?, ?> call : calls) analytics.enqueue(call);

    analytics.flush();
    // A shutdown waits for no call that is to be sent again.
    results.open.await();
    analytics.shutdown();
    if (results.failed != null) {
      System.err.println(results.failed);
      System.exit(1);
    }
  }
}
