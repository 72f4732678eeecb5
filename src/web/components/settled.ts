import { useEffect, useState } from 'preact/hooks'

/** How long typing must have paused, in ms. */
const settledMs = 200

/** The text once its typing has paused: the API is not asked for each character. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), settledMs)
    return () => window.clearTimeout(timer)
  }, [text])
  return settled
}
