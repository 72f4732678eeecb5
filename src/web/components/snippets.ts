export type SnippetKind = 'curl' | 'node' | 'browser'

/** In JavaScript, also within a page. */
const jsText = (text: string): string => JSON.stringify(text).replaceAll('<', '\\u003c')

const htmlText = (text: string): string => `"${text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}"`

const shellText = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** What sends a call as it stands, by where it is pasted. */
export const snippets: Record<SnippetKind, (collector: string, writeKey: string) => string> = {
  curl: (collector, writeKey) =>
    `curl ${shellText(`${collector}/v1/track`)} -u ${shellText(`${writeKey}:`)} \\
  -d '{"userId": "me", "event": "Hello from curl"}'`,
  node: (collector, writeKey) =>
    `// npm install @segment/analytics-node
import { Analytics } from '@segment/analytics-node'

const analytics = new Analytics({
  writeKey: ${jsText(writeKey)},
  host: ${jsText(collector)},
})
analytics.track({ userId: 'me', event: 'Hello from Node' })
await analytics.closeAndFlush()`,
  browser: (collector, writeKey) =>
    `<script>
  window.analytics = window.analytics || []
  for (const name of ['page', 'identify', 'track', 'group', 'alias', 'reset', 'ready'])
    analytics[name] = (...given) => void analytics.push([name, ...given])
  analytics.page()
  analytics.track('Hello from a browser')
</script>
<script async src=${htmlText(`${collector}/analytics.js/v1/${encodeURIComponent(writeKey)}/analytics.min.js`)}></script>`,
}
