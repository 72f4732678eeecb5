export interface PageProps {
  /** What stands in its path. */
  params: Record<string, string>
}
