/** The small parts that pages are made of. */
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { toolName } from "./Name.ts"
import type { Refused } from "./Requests.ts"

/** A page: its heading gets the focus when the page is opened, so that a screen reader says where one is. */
export const Page = ({
  children,
  lead,
  title
}: {
  readonly title: string
  readonly lead?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const heading = useRef<HTMLHeadingElement>(null)
  // Before anybody can see the page, or press a key in it
  useLayoutEffect(() => {
    document.title = `${title} · ${toolName()}`
    heading.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [title])
  return (
    <>
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lead === undefined ? null : <p class="lead">{lead}</p>}
      </header>
      <div class="flow">{children}</div>
    </>
  )
}

export const Card = ({
  aside,
  children,
  class: name = "",
  title
}: {
  readonly title?: ComponentChildren
  readonly aside?: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}) => (
  <section class={`card ${name}`}>
    {title === undefined ? null : (
      <div class="card-head">
        <h2>{title}</h2>
        {aside === undefined ? null : <div class="aside">{aside}</div>}
      </div>
    )}
    {children}
  </section>
)

/** What was refused, said at once by a screen reader. */
export const Trouble = ({ again, refused }: { readonly refused: Refused; readonly again?: () => void }) => (
  <div class="trouble" role="alert">
    <p>
      {refused.message} {refused.status === 0 ? null : <code>{refused.code}</code>}
    </p>
    {again === undefined ? null : (
      <button type="button" onClick={again}>
        Try again
      </button>
    )}
  </div>
)

export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

/** Holds the place of what is on its way, at its height, so that nothing moves when it comes. */
export const Waiting = ({ lines = 3 }: { readonly lines?: number }) => (
  <div class="waiting" aria-busy="true">
    <span class="unseen">Loading</span>
    {Array.from({ length: lines }, (_, line) => (
      <span key={line} class="bone" />
    ))}
  </div>
)

/** A word on a coloured ground. */
export const Badge = ({ children, tone }: { readonly tone: "good" | "bad" | "busy" | "calm"; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** Text to copy, with a button that copies it. */
export const Code = ({ label, text }: { readonly text: string; readonly label: string }) => {
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by keyboard */}
      <section class="code-text" tabIndex={0} aria-label={label}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
      <button type="button" class="copy" onClick={copy} aria-label={`Copy ${label}`}>
        <span aria-live="polite">{copied ? "Copied" : "Copy"}</span>
      </button>
    </div>
  )
}

/** Tabs, of which the arrow keys choose. WAI-ARIA Authoring Practices, "Tabs". */
export const Tabs = <Name extends string>({
  children,
  label,
  names,
  onChoose,
  chosen
}: {
  readonly label: string
  readonly names: ReadonlyArray<readonly [Name, string]>
  readonly chosen: Name
  readonly onChoose: (name: Name) => void
  readonly children: ComponentChildren
}) => {
  const list = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const place = (names.findIndex(([name]) => name === chosen) + step + names.length) % names.length
    const next = names[place]
    if (next !== undefined) onChoose(next[0])
    list.current?.querySelectorAll("button")[place]?.focus()
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {names.map(([name, text]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === chosen}
            aria-controls={`panel-${chosen}`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {text}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`panel-${chosen}`} aria-labelledby={`tab-${chosen}`}>
        {children}
      </div>
    </>
  )
}
