/** Text that JSON.stringify puts out as it is (TypeScript does not know it yet). */
export const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): unknown
  isRawJSON(value: unknown): boolean
}

/** Whether what JSON.stringify writes for the number is the same number. `-0` is 0. */
export function isExact(number: string): boolean {
  const value = Number(number)
  if (value === 0) return !/^[^eE]*[1-9]/.test(number)
  return Number.isFinite(value) && plainNumber(number) === plainNumber(String(value))
}

const numberForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** One spelling of a number: its digits without zeros at either end, and the power of ten. */
export function plainNumber(number: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = numberForm.exec(number)!
  const digits = whole + fraction
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  while (digits[end - 1] === '0') end--
  if (start >= end) return '0'
  const power = BigInt(exponent) + BigInt(digits.length - end - fraction.length)
  return `${sign}${digits.slice(start, end)}e${power}`
}
