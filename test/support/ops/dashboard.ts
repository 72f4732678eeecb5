import { readPage } from '../docs.ts'

export const dashboardFile = 'ops/grafana/postrider.json'

interface Variable {
  name: string
  type: string
  allValue?: string | null
  query: string | { query: string }
}

export interface Panel {
  id: number
  type: string
  title: string
  description?: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { expr: string; datasource: { uid: string } }[]
}

export interface Dashboard {
  uid: string
  panels: Panel[]
  templating: { list: Variable[] }
}

export const readDashboard = (): Dashboard => JSON.parse(readPage(dashboardFile)) as Dashboard

/** An expression as Grafana sends it when "All" is chosen everywhere. Throws for a variable that the dashboard lacks. */
export function interpolate(expr: string, { templating }: Dashboard): string {
  return expr.replace(/\$\{?(\w+)\}?/g, (_, name: string) => {
    if (name === '__rate_interval') return '15s'
    const variable = templating.list.find((one) => one.name === name)
    if (!variable) throw new Error(`there is no variable ${name}: ${expr}`)
    return variable.allValue ?? ''
  })
}
