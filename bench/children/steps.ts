// Loaded before a forwarder (`node --import`): every function of `src` says in which file it is when it is called, and when
// it returns. Asked by `{ steps: 'count' }` it notes from then on who calls whom, asked by `{ steps: 'report' }` it says so.
import { registerHooks } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = new URL('../../src/', import.meta.url)

/** Files of the functions that run now; what libraries and the event loop call has none above it. */
const running: string[] = []
const steps = new Set<string>()
const hooks = globalThis as { __called?: (file: string) => void; __returned?: () => void }

hooks.__called = (file) => {
  const caller = running.at(-1) ?? 'outside'
  if (caller !== file) steps.add(`${caller} > ${file}`)
  running.push(file)
}
hooks.__returned = () => {
  running.pop()
}

process.on('message', ({ steps: asked }: { steps?: 'count' | 'report' }) => {
  if (asked === 'report') process.send!({ kind: 'steps', steps: [...steps] })
  if (asked) steps.clear()
})

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.startsWith(root.href) || !url.endsWith('.ts')) return loaded
    const file = relative(fileURLToPath(root), fileURLToPath(url))
    return { ...loaded, source: withSteps(String(loaded.source), file) }
  },
})

/** A function that waits counts as called only: what it does afterwards is called by whatever it waited for. */
function withSteps(text: string, file: string): string {
  const called = `__called(${JSON.stringify(file)});`
  const inserted: { at: number; text: string }[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const body = node.body as ts.Node
      const isBlock = ts.isBlock(body)
      const [from, to] = isBlock ? [body.getStart() + 1, body.getEnd() - 1] : [body.getStart(), body.getEnd()]
      const open = waits(node) ? `${called}__returned();` : `${called}try{`
      const close = waits(node) ? '' : '}finally{__returned()}'
      inserted.push({ at: from, text: isBlock ? open : `{${open}return (` })
      inserted.push({ at: to, text: isBlock ? close : `)${close}}` })
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
  let result = ''
  let from = 0
  for (const { at, text: what } of inserted.toSorted((a, b) => a.at - b.at)) {
    result += text.slice(from, at) + what
    from = at
  }
  return result + text.slice(from)
}

const waits = (node: ts.Node): boolean =>
  (ts.canHaveModifiers(node) &&
    (ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false)) ||
  ('asteriskToken' in node && node.asteriskToken !== undefined)
