/** Takes what is there at once, or once it is: for what is done for each record, and waits for none in a million. */
export function whenKnown<T, R>(found: T | Promise<T>, take: (found: T) => R): R | Promise<R> {
  return found instanceof Promise ? found.then(take) : take(found)
}
