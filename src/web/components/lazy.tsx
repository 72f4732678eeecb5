import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading, Note } from './notices.tsx'

/** A part that is much, and that most who look at its page do not want: its script is loaded when it is first shown. */
export function Lazy<P extends object>({
  load,
  what,
  props,
}: {
  /** The same function each time. */
  load: () => Promise<ComponentType<P>>
  /** For people: `the settings`. */
  what: string
  props: P
}) {
  const [loaded, setLoaded] = useState<{ Part: ComponentType<P> | null }>()
  useEffect(() => {
    load().then(
      (Part) => setLoaded({ Part }),
      // The console was upgraded since this page was opened, or is away.
      () => setLoaded({ Part: null }),
    )
  }, [load])
  if (!loaded) return <Loading what={what} />
  const { Part } = loaded
  return Part ? <Part {...props} /> : <Note tone="warn">{`Cannot load ${what}: reload the page.`}</Note>
}
