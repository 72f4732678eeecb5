/** A choice of a few, side by side: as buttons, of which one is pressed. */
export function Choice<T extends string>({
  label,
  value,
  choices,
  choose,
}: {
  label: string
  value: T
  choices: readonly (readonly [value: T, text: string])[]
  choose: (value: T) => void
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {choices.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => choose(each)}>
          {text}
        </button>
      ))}
    </div>
  )
}
