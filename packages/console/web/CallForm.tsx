/** One operation: its form, its price, what came back, and the same call as code. */
import { useEffect, useRef, useState } from "preact/hooks"
import { AnswerView } from "./AnswerView.tsx"
import { useTool } from "./Context.ts"
import type { Operation, Price } from "./Contract.ts"
import { useData } from "./Data.ts"
import { answerName } from "./FileName.ts"
import { ended, filePath, isRunning, jobPath } from "./Follow.ts"
import { exampleOf, fieldsOf, type Made, quantityOf, requestOf, type Texts } from "./Form.ts"
import { FormView } from "./FormView.tsx"
import { Card, Code, Tabs, Trouble } from "./Parts.tsx"
import { hrefOf } from "./Place.ts"
import { type Answer, currentAccess, type Refused, refusedBy, send } from "./Requests.ts"
import { type Call, curl, python, typescript } from "./Samples.ts"
import { LIMITS, type Limits } from "./Shapes.ts"
import { counted, credits } from "./Text.ts"

/** Seconds that a call of the tool waits for what takes time. */
const WAIT = 20

type State =
  | { readonly name: "idle" }
  | { readonly name: "busy" }
  | { readonly name: "refused"; readonly refused: Refused }
  | { readonly name: "answered"; readonly answer: Answer; readonly file?: string; readonly job?: "running" | "ended" | "failed" }

export const CallForm = ({ operation }: { readonly operation: Operation }) => {
  const fields = fieldsOf(operation)
  const [texts, setTexts] = useState<Texts>(() => exampleOf(fields))
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({})
  const { run, state } = useCall(operation)
  const trial = useTrial(operation, state.name === "answered" ? state.answer : undefined)
  const made = requestOf(operation, fields, texts)
  const saveAs = answerName(operation.answers)
  const form = useRef<HTMLFormElement>(null)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    setWrong(made.ok ? {} : made.wrong)
    if (made.ok) return run(made)
    const [first] = Object.keys(made.wrong)
    form.current?.querySelector<HTMLElement>(`[name="${first}"]`)?.focus()
  }
  const change = (name: string, text: string) => {
    setTexts((before) => ({ ...before, [name]: text }))
    setWrong(({ [name]: _, ...others }) => others)
  }
  return (
    <>
      <Card>
        <div class="call-head">
          <h2>{operation.summary}</h2>
          <p class="route">
            <span class="method">{operation.method}</span> <code>{operation.path}</code>
          </p>
        </div>
        <form class="stack" ref={form} onSubmit={submit} noValidate>
          <FormView fields={fields} texts={texts} wrong={wrong} onChange={change} />
          <div class="send">
            <button type="submit" class="main" disabled={state.name === "busy"}>
              {state.name === "busy" ? "Calling" : "Call"}
            </button>
            <p class="cost">{trial ?? costOf(operation.price, quantityOf(fields, texts))}</p>
          </div>
        </form>
      </Card>
      <div aria-live="polite">
        {state.name === "refused" ? <Trouble refused={state.refused} /> : null}
        {state.name === "answered" ? <AnswerView answer={state.answer} file={state.file} job={state.job} /> : null}
      </div>
      {made.ok ? (
        <Samples call={{ ...made, ...(operation.waits ? { wait: WAIT } : {}), ...(saveAs === undefined ? {} : { saveAs }) }} />
      ) : null}
    </>
  )
}

/** What the call will cost, in words. */
export const costOf = (price: Price | undefined, quantity: number): string => {
  if (price === undefined || price.credits === 0) return "Free"
  const total = Math.round(price.credits * quantity * 1_000) / 1_000
  const money = `${price.currency} ${Number((Number(price.value) * quantity).toPrecision(6))}`
  const each = quantity === 1 && price.unit === "call" ? "" : ` for ${quantity} × ${price.unit}`
  return `Costs ${credits(total)}${each} (${money})`
}

/** What a call costs an account on trial, in words: undefined where it costs credits, or nothing. `answer`: the last one of the form. */
const useTrial = ({ price, waits }: Operation, answer: Answer | undefined): string | undefined => {
  const asks = price !== undefined && price.credits > 0 && !waits
  const { data } = useData<Limits>(asks ? LIMITS : undefined)
  const told = answer?.headers.get("x-trial-remaining") ?? undefined
  const remaining = data?.trial === undefined || told === undefined ? data?.trial?.remaining : Number(told)
  if (remaining === undefined || remaining === 0) return undefined
  return remaining === 1 ? "Costs the last trial call" : `Costs one of the ${counted(remaining, "trial call")} that are left`
}

/** Makes calls one after the other, and follows the job that one makes. */
const useCall = (operation: Operation) => {
  const { contract } = useTool()
  const [state, setState] = useState<State>({ name: "idle" })
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const make = async ({ body, method, path }: Extract<Made, { readonly ok: true }>, signal: AbortSignal) => {
    const answer = await send({
      method,
      path,
      signal,
      ...(body === undefined ? {} : { body }),
      ...(operation.waits ? { headers: { Prefer: `wait=${WAIT}` } } : {})
    })
    if (signal.aborted) return
    const { data } = (answer.json ?? {}) as { readonly data?: unknown }
    const job = answer.ok && isRunning(data) ? jobPath(contract, operation, data) : undefined
    const file = answer.ok ? filePath(contract, operation, data) : undefined
    setState({ name: "answered", answer, ...(file === undefined ? {} : { file }), ...(job === undefined ? {} : { job: "running" }) })
    if (job === undefined) return
    const last = await ended(job, signal)
    if (signal.aborted) return
    const made = filePath(contract, operation, last)
    const json = { ...(answer.json as object), data: last }
    setState({
      name: "answered",
      answer: { ...answer, json },
      job: made === undefined ? "failed" : "ended",
      ...(made === undefined ? {} : { file: made })
    })
  }
  const run = (request: Extract<Made, { readonly ok: true }>) => {
    running.current?.abort()
    const controller = new AbortController()
    running.current = controller
    setState({ name: "busy" })
    make(request, controller.signal).catch((error: unknown) => {
      if (!controller.signal.aborted) setState({ name: "refused", refused: refusedBy(error) })
    })
  }
  return { run, state }
}

const LANGUAGES = [
  ["curl", "curl"],
  ["typescript", "TypeScript"],
  ["python", "Python"]
] as const

const Samples = ({ call }: { readonly call: Call }) => {
  const [language, setLanguage] = useState<(typeof LANGUAGES)[number][0]>("curl")
  const text = { curl, typescript, python }[language](location.origin, call)
  return (
    <Card title="The same call as code">
      <Tabs label="Language" names={LANGUAGES} chosen={language} onChoose={setLanguage}>
        <Code text={text} label={`the call in ${language}`} />
      </Tabs>
      <p class="hint">
        The code takes the key from the variable <code>MILLRACE_KEY</code>.{" "}
        {currentAccess().by === "session" ? <a href={hrefOf("keys")}>Issue one.</a> : null}
      </p>
    </Card>
  )
}
