import { options, type VNode } from 'preact'
import { visibleText } from './visible-text.ts'

/** From now on for all that is drawn. What is typed into fields stays as it is. */
export function showInvisible(): void {
  const before = options.vnode
  options.vnode = (vnode: VNode<{ children?: unknown }>) => {
    if (typeof vnode.type === 'string') {
      const { children } = vnode.props
      if (typeof children === 'string') vnode.props.children = visibleText(children)
      else if (Array.isArray(children))
        vnode.props.children = children.map((child: unknown) =>
          typeof child === 'string' ? visibleText(child) : child,
        )
    }
    before?.(vnode)
  }
}
