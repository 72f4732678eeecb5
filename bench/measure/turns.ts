/**
 * One round of turns among several, each as often as its weight says and as evenly spread as that allows (smooth
 * weighted round robin). Weights are whole numbers.
 */
export function turns(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const credit = weights.map(() => 0)
  return Array.from({ length: total }, () => {
    weights.forEach((weight, index) => (credit[index]! += weight))
    const next = credit.indexOf(Math.max(...credit))
    credit[next]! -= total
    return next
  })
}
