import { useEffect, useRef, useState } from 'preact/hooks'
import { TextField } from './fields.tsx'

const quietMs = 600

/** A field whose text counts once nobody has typed for a moment: each change asks again. */
export function LateField({
  label,
  value,
  change,
}: {
  label: string
  value: string
  change: (value: string) => void
}) {
  const [text, setText] = useState(value)
  const given = useRef(value)
  useEffect(() => {
    // Changed by somebody else: the back button.
    if (value !== given.current) {
      given.current = value
      setText(value)
    }
  }, [value])
  useEffect(() => {
    if (text === given.current) return
    const timer = window.setTimeout(() => {
      given.current = text
      change(text)
    }, quietMs)
    return () => window.clearTimeout(timer)
  }, [text])
  return <TextField label={label} type="search" value={text} change={setText} />
}
