import type { Config } from '../../config.ts'
import { topicNames } from '../../core/topics.ts'
import { demoId } from './demo.ts'
import type { Screen } from './screen.ts'

/** What to type next, to be copied as it stands. */
export function sayNext(
  screen: Screen,
  config: Config,
  { metricsPort, receiverUrl }: { metricsPort: number; receiverUrl: string },
): void {
  const { calls } = topicNames(config.topicPrefix)
  const call = `{"type":"track","userId":"me","event":"Hello","properties":{"n":1}}`
  screen.say(`
In a second terminal, in this folder:

  # a call of your own: into ${calls}, out to ${receiverUrl}
  echo '${call}' | npx postrider produce --source ${demoId}

  # where calls come from and go to; a destination of your own
  npx postrider sources list
  npx postrider destinations list
  npx postrider destinations create --help

  # what is going on
  curl -s http://localhost:${metricsPort}/metrics | grep postrider_deliveries_total
  npx postrider dead-letters list

What arrives at the demo’s receiver is shown here. Ctrl-C ends everything.
`)
}
