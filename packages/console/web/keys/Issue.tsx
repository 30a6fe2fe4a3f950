/** Issues a key: its name, what it may do, and until when. */
import { useState } from "preact/hooks"
import { useTool } from "../Context.ts"
import { Card, Trouble } from "../Parts.tsx"
import { ask, type Refused, refusedBy } from "../Requests.ts"

export const KEYS = "/api/v1/account/keys"

export interface NewKey {
  readonly key_id: string
  /** Shown this once. */
  readonly key: string
}

/** What the scopes are for, in words. One that is not here is shown by its name. */
const WORDS: Readonly<Record<string, string>> = {
  read: "read the account",
  operations: "make calls",
  keys: "manage keys",
  billing: "buy credits"
}

const USUAL: ReadonlySet<string> = new Set(["read", "operations"])

/** The body of the request: what was left empty is not sent. */
const bodyOf = (form: FormData) => {
  const [name, until] = ["name", "until"].map((field) => String(form.get(field) ?? "").trim())
  return {
    scopes: form.getAll("scope").map(String),
    ...(name === "" ? {} : { name }),
    ...(until === undefined || until === "" ? {} : { expires_at: new Date(until).toISOString() })
  }
}

export const Issue = ({ onIssued }: { readonly onIssued: (key: NewKey) => void }) => {
  const { contract } = useTool()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const scopes = contract
    .find("POST", KEYS)
    ?.parameters.find(({ name }) => name === "scopes")
    ?.schema.items?.enum?.map(String) ?? [...USUAL]
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    setBusy(true)
    setRefused(undefined)
    ask<NewKey>({ method: "POST", path: KEYS, body: bodyOf(new FormData(form)) })
      .then(
        (key) => {
          form.reset()
          onIssued(key)
        },
        (error: unknown) => setRefused(refusedBy(error))
      )
      .finally(() => setBusy(false))
  }
  return (
    <Card title="Issue a key">
      <form class="stack" onSubmit={submit}>
        <label class="field">
          <span>Name</span>
          <input name="name" maxLength={100} autocomplete="off" placeholder="reports" />
        </label>
        <fieldset>
          <legend>What it may do</legend>
          <div class="choices">
            {scopes.map((scope) => (
              <label key={scope}>
                <input type="checkbox" name="scope" value={scope} defaultChecked={USUAL.has(scope)} />
                {WORDS[scope] ?? scope}
              </label>
            ))}
          </div>
        </fieldset>
        <label class="field">
          <span>Until (never, if left empty)</span>
          <input type="datetime-local" name="until" />
        </label>
        {refused === undefined ? null : <Trouble refused={refused} />}
        <div>
          <button type="submit" class="main" disabled={isBusy}>
            Issue
          </button>
        </div>
      </form>
    </Card>
  )
}
