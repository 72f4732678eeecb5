/** The environment of a process that is to find nothing of this one's settings; it starts faster by the run's cache. */
export const bareEnv: Record<string, string> = {
  PATH: process.env.PATH ?? '',
  ...(process.env.NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
}
