/** A user id a line becomes JSON lines, as the API takes them; what is JSON already stays as it is. */
export function linesOfIds(text: string, member = true): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) =>
      line.startsWith('{') ? line : JSON.stringify({ userId: line, ...(!member && { member }) }),
    )
    .map((line) => `${line}\n`)
    .join('')
}
