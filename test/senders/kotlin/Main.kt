// Sends a call of each type, and runs on until its input ends: the SDK tells nobody that calls were sent.
import com.segment.analytics.kotlin.core.Analytics
import com.segment.analytics.kotlin.core.Settings
import com.segment.analytics.kotlin.core.Telemetry
import kotlin.system.exitProcess
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonObject

fun main() {
    val collector = System.getenv("COLLECTOR")
    val writeKey = System.getenv("WRITE_KEY")
    Telemetry.enable = false
    val analytics = Analytics(writeKey) {
        application = "shop"
        cdnHost = "$collector/v1"
        apiHost = "$collector/v1"
        defaultSettings = Settings(buildJsonObject { putJsonObject("Segment.io") { put("apiKey", writeKey) } })
    }

    // What it is given before it has read its state may be lost.
    waitFor { analytics.settings() != null }
    analytics.identify("u-1", buildJsonObject { put("plan", "pro"); put("name", "Jürgen 🚲") })
    // The user of later calls is taken from its state as well, which now and then never learns of it.
    waitFor { analytics.userId() == "u-1" }
    analytics.track("Order Completed", buildJsonObject { put("total", 12.5); put("note", "日本") })
    analytics.screen("Home", buildJsonObject { put("from", "start") })
    analytics.group("g-1", buildJsonObject { put("seats", 5) })
    analytics.alias("u-2")

    // It sends by itself, every half a minute.
    while (System.`in`.read() >= 0) continue
    exitProcess(0)
}

/** Ten seconds at most. */
fun waitFor(isTrue: () -> Boolean) {
    var left = 1_000
    while (!isTrue() && left-- > 0) Thread.sleep(10)
}
