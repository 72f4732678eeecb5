/** Uses what is open, and closes it whatever comes of it. */
export async function withOpen<P extends { close(): unknown }, T>(
  open: P,
  use: (open: P) => Promise<T> | T,
): Promise<T> {
  try {
    return await use(open)
  } finally {
    await open.close()
  }
}
