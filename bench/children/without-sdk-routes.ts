// Loaded before a collector (`node --import`): it then has none of the routes that SDKs ask before they send, nor the code
// behind them. Only a benchmark has use for that.
import { registerHooks } from 'node:module'

registerHooks({
  load: (url, context, next) =>
    url.endsWith('/src/adapters/http/sdk-routes.ts')
      ? { format: 'module', source: 'export const addSdkRoutes = () => {}', shortCircuit: true }
      : next(url, context),
})
