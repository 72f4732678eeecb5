import { TextField } from './field.tsx'

/** The id of something new. */
export const IdField = ({ value, change }: { value: string; change: (id: string) => void }) => (
  <TextField
    label="Id"
    value={value}
    change={change}
    autofocus
    hint="Up to 64 of a-z, 0-9, “_” and “-”. It can never be changed."
  />
)
