/** How long before its end a certificate is warned of: an authority may take days to issue the next one. */
export const expiresSoonMs = 14 * 86_400_000

export function expiryOf(expiresAt: number, now: number): 'expired' | 'soon' | 'later' {
  if (expiresAt <= now) return 'expired'
  return expiresAt - now < expiresSoonMs ? 'soon' : 'later'
}
