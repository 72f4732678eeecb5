# Sends a call of each type, and ends once each of them was accepted or given up.
import os
import sys

import segment.analytics as analytics

failed = []

analytics.write_key = os.environ["WRITE_KEY"]
analytics.host = os.environ["COLLECTOR"]
analytics.on_error = lambda error, calls: failed.append(error)

analytics.identify("u-1", {"plan": "pro", "name": "Jürgen 🚲"})
analytics.track("u-1", "Order Completed", {"total": 12.5, "note": "日本"})
analytics.page("u-1", name="Products", properties={"url": "https://shop.example/products"})
analytics.screen("u-1", name="Home", properties={"from": "start"})
analytics.group("u-1", "g-1", {"seats": 5})
analytics.alias("u-1", "u-2")

analytics.shutdown()
if failed:
    sys.exit(str(failed))
