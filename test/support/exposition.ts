/** One sample of a metrics page: `name{labels}` as it stands there, and its value. */
export type Samples = Map<string, number>

/**
 * Reads Prometheus' text format strictly: each family's HELP and TYPE come once and before its samples, no series
 * appears twice, and every family's samples stand together. Throws an Error that names the line otherwise.
 */
export function parseExposition(text: string): { samples: Samples; types: Map<string, string> } {
  const samples: Samples = new Map()
  const types = new Map<string, string>()
  let family = ''
  if (!text.endsWith('\n')) throw new Error('the page does not end with the end of a line')
  for (const line of text.slice(0, -1).split('\n')) {
    const heading = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line)
    if (heading) {
      const [, kind, name, rest] = heading as unknown as [string, string, string, string]
      if (kind === 'TYPE') {
        if (types.has(name)) throw new Error(`twice: ${line}`)
        types.set(name, rest)
        family = name
      }
      continue
    }
    if (line === '') continue
    const sample = /^([a-zA-Z_:][\w:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)$/.exec(line)
    if (!sample) throw new Error(`not a sample: ${line}`)
    const [, name, labels = '', value] = sample as unknown as [string, string, string | undefined, string]
    const base = types.get(family) === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') : name
    if (base !== family) throw new Error(`outside of its family: ${line}`)
    // prom-client writes `Nan`; readers take any case.
    const number = value === '+Inf' ? Infinity : Number(value)
    if (Number.isNaN(number) && value.toLowerCase() !== 'nan') throw new Error(`no number: ${line}`)
    if (samples.has(name + labels)) throw new Error(`twice: ${line}`)
    samples.set(name + labels, number)
  }
  return { samples, types }
}
