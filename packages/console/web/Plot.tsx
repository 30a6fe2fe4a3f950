/** Plots as SVG. Each has a title and a description for screen readers, and its numbers as a table that anybody can open. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import { amount } from "./Text.ts"
import { ticksTo } from "./Ticks.ts"

export interface Point {
  readonly label: string
  readonly value: number
}

export interface Plotted {
  readonly title: string
  /** What it shows, in a sentence with its most important numbers. */
  readonly description: string
  /** What the points are, such as `Day`. */
  readonly head: string
  readonly unit: string
  readonly points: ReadonlyArray<Point>
  /** A line over an area, or columns. */
  readonly shape: "area" | "columns"
}

/** Pixels. */
const HEIGHT = 208
const TOP = 12
const BOTTOM = 28
const RIGHT = 24
/** Of a letter on an axis. */
const LETTER = 7

export const Plot = ({ description, head, points, shape, title, unit }: Plotted) => {
  const id = useId()
  const [frame, width] = useWidth()
  const [pointed, setPointed] = useState<number>()
  const ticks = ticksTo(Math.max(...points.map(({ value }) => value), 0))
  const top = ticks.at(-1) ?? 1
  const left = Math.max(...ticks.map((tick) => amount(tick).length)) * LETTER + 12
  const room = Math.max(0, width - left - RIGHT)
  const step = points.length === 0 ? 0 : room / points.length
  const x = (index: number) => left + step * (index + 0.5)
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)
  const every = Math.max(1, Math.ceil((points.length * 64) / Math.max(1, room)))
  const point = pointed === undefined ? undefined : points[pointed]
  const follow = (event: PointerEvent) => {
    const { left: from } = (event.currentTarget as Element).getBoundingClientRect()
    const index = Math.floor((event.clientX - from - left) / step)
    setPointed(index >= 0 && index < points.length ? index : undefined)
  }
  return (
    <figure class="plot" ref={frame}>
      <svg
        width={width}
        height={HEIGHT}
        role="img"
        aria-labelledby={`${id}t ${id}d`}
        onPointerMove={follow}
        onPointerLeave={() => setPointed(undefined)}
      >
        <title id={`${id}t`}>{title}</title>
        <desc id={`${id}d`}>{description}</desc>
        {ticks.map((tick) => (
          <g key={tick}>
            <line class={tick === 0 ? "axis" : "grid"} x1={left} x2={width} y1={y(tick)} y2={y(tick)} />
            <text class="tick" x={left - 8} y={y(tick) + 4} text-anchor="end">
              {amount(tick)}
            </text>
          </g>
        ))}
        {points.map(({ label }, index) =>
          (points.length - 1 - index) % every === 0 ? (
            <text key={label} class="tick" x={x(index)} y={HEIGHT - 8} text-anchor="middle">
              {label}
            </text>
          ) : null
        )}
        {shape === "columns" ? <Columns points={points} x={x} y={y} step={step} pointed={pointed} /> : <Area points={points} x={x} y={y} />}
        {point === undefined || pointed === undefined ? null : (
          <g class="pointed">
            <line x1={x(pointed)} x2={x(pointed)} y1={TOP} y2={y(0)} />
            {shape === "area" ? <circle cx={x(pointed)} cy={y(point.value)} r="4" /> : null}
          </g>
        )}
      </svg>
      <p class="pointed-text" aria-hidden="true">
        {point === undefined ? " " : `${point.label}: ${amount(point.value)} ${unit.toLowerCase()}`}
      </p>
      <Numbers head={head} points={points} unit={unit} />
    </figure>
  )
}

interface Scaled {
  readonly points: ReadonlyArray<Point>
  readonly x: (index: number) => number
  readonly y: (value: number) => number
}

/** A step for each day: a balance holds until it changes. */
const Area = ({ points, x, y }: Scaled) => {
  const line = points.map(({ value }, index) => `${index === 0 ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("")
  return points.length === 0 ? null : (
    <>
      <path class="area" d={`${line}L${x(points.length - 1).toFixed(1)} ${y(0)}L${x(0).toFixed(1)} ${y(0)}Z`} />
      <path class="line" d={line} />
    </>
  )
}

const Columns = ({ points, pointed, step, x, y }: Scaled & { readonly step: number; readonly pointed: number | undefined }) => {
  const width = Math.max(2, Math.min(24, step * 0.68))
  return (
    <>
      {points.map(({ label, value }, index) =>
        value <= 0 ? null : (
          <rect
            key={label}
            class={index === pointed ? "column is-pointed" : "column"}
            x={x(index) - width / 2}
            y={Math.min(y(value), y(0) - 2)}
            width={width}
            height={Math.max(2, y(0) - y(value))}
            rx={Math.min(3, width / 2)}
          />
        )
      )}
    </>
  )
}

const Numbers = ({ head, points, unit }: Pick<Plotted, "head" | "points" | "unit">) => (
  <details class="numbers">
    <summary>Numbers</summary>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
    <section class="scrolls" tabIndex={0} aria-label={`${unit} by ${head.toLowerCase()}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col" class="number">
              {unit}
            </th>
          </tr>
        </thead>
        <tbody>
          {points.map(({ label, value }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td class="number">{amount(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  </details>
)

/** The width of an element, before it is painted and whenever it changes. */
const useWidth = () => {
  const element = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return
    setWidth(current.clientWidth)
    const observer = new ResizeObserver(() => setWidth(current.clientWidth))
    observer.observe(current)
    return () => observer.disconnect()
  }, [])
  return [element, width] as const
}

export interface Bar {
  readonly id: string
  readonly name: string
  readonly value: number
  /** Beside the value. */
  readonly text: string
  readonly note?: string
}

/** Bars beside each other, the widest for the largest value. The values stand as text, so it is a list to a screen reader. */
export const Bars = ({ bars, label }: { readonly label: string; readonly bars: ReadonlyArray<Bar> }) => {
  const largest = Math.max(...bars.map(({ value }) => value), 0)
  return (
    <ul class="bars" aria-label={label}>
      {bars.map(({ id, name, note, text, value }) => (
        <li key={id}>
          <span class="bar-name">{name}</span>
          <span class="bar-text">{text}</span>
          <span class="bar-track" aria-hidden="true">
            <span class="bar" style={{ width: `${largest === 0 ? 0 : Math.max(1, (value / largest) * 100)}%` }} />
          </span>
          {note === undefined ? null : <span class="bar-note">{note}</span>}
        </li>
      ))}
    </ul>
  )
}
