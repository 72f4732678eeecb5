import type { Config } from '../../config/config.ts'
import { topicNames } from '../../core/topics.ts'
import { demoId } from './demo.ts'
import { loginMinutes } from '../../console/page/session.ts'
import type { Screen } from './screen.ts'

export interface Places {
  collectorUrl: string
  consoleUrl: string
  /** Logs a browser in, once. */
  loginUrl: string
  /** Of the demo's source. Not secret: browsers publish such keys. */
  writeKey: string
  metricsPort: number
  receiverUrl: string
}

/** What to type next, to be copied as it stands. */
export function sayNext(screen: Screen, config: Config, places: Places): void {
  const { collectorUrl, consoleUrl, loginUrl, metricsPort, receiverUrl } = places
  // A key that the user has chosen may have characters that a shell takes for its own.
  const writeKey = /^[\w.-]+$/.test(places.writeKey) ? places.writeKey : 'WRITE_KEY'
  const { calls } = topicNames(config.topicPrefix)
  screen.say(`
Open the console in a browser; this link logs in once, within ${loginMinutes} minutes:

  ${loginUrl}

Later, log in at ${consoleUrl} with ADMIN_TOKEN of .postrider/dev.env; the next start prints another link.

In a second terminal, in this folder:

  # a call of your own, over HTTP: into ${calls}, out to ${receiverUrl}
  curl ${collectorUrl}/v1/track -u ${writeKey}: -d '{"userId":"me","event":"Hello","properties":{"n":1}}'

  # one by the client library; \`npx postrider sources show ${demoId}\` prints the write key
  npx node --input-type=module -e "
    import { Analytics } from 'postrider'
    const analytics = new Analytics('${writeKey}', { endpoint: '${collectorUrl}' })
    analytics.track({ userId: 'me', event: 'Hello from Node' })
    await analytics.close()
  "

  # one straight into Kafka
  echo '{"type":"track","userId":"me","event":"Hello"}' | npx postrider produce --source ${demoId}

  # where calls come from and go to; a destination of your own
  npx postrider sources list
  npx postrider destinations list
  npx postrider destinations create --help

  # the same over HTTP; the token lies in .postrider/dev.env, unless you have set ADMIN_TOKEN
  export ADMIN_TOKEN=$(sed -n 's/^ADMIN_TOKEN=//p' .postrider/dev.env)
  curl -s ${consoleUrl}/api/v1/destinations -H "Authorization: Bearer $ADMIN_TOKEN"

  # what is going on
  curl -s http://localhost:${metricsPort}/metrics | grep postrider_deliveries_total
  npx postrider dead-letters list

What arrives at the demo’s receiver is shown here. Ctrl-C ends everything.
`)
}
