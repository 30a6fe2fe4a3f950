/** The passkeys of the person who signed in: add, name and remove. */
import { useState } from "preact/hooks"
import { useTool } from "../Context.ts"
import { useData } from "../Data.ts"
import { Card, Empty, Trouble } from "../Parts.tsx"
import { addPasskey, hasPasskeys, PASSKEYS, type Passkey } from "../Passkeys.ts"
import { ask, type Refused, refusedBy } from "../Requests.ts"
import { away } from "../Text.ts"

export const Passkeys = () => {
  const { contract } = useTool()
  const passkeys = useData<{ readonly passkeys: ReadonlyArray<Passkey> }>(PASSKEYS)
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const change = (act: Promise<unknown>) => {
    setBusy(true)
    setRefused(undefined)
    return act.then(passkeys.again, (error: unknown) => setRefused(refusedBy(error))).finally(() => setBusy(false))
  }
  const add = (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const name = String(new FormData(form).get("name") ?? "").trim()
    void change(addPasskey(name).then(() => form.reset()))
  }
  return (
    <Card title="Passkeys">
      {passkeys.refused === undefined ? null : <Trouble refused={passkeys.refused} again={passkeys.again} />}
      {passkeys.data?.passkeys.length === 0 ? <Empty>There is no passkey. With one, you sign in without a mail.</Empty> : null}
      <ul class="lines">
        {passkeys.data?.passkeys.map(({ added_at, name, passkey_id, used_at }) => (
          <li key={passkey_id} class="inbox-line">
            <span>
              {name ?? "Unnamed"}
              <br />
              <span class="hint">
                added {away(added_at, Date.now())}, {used_at === null ? "never used" : `used ${away(used_at, Date.now())}`}
              </span>
            </span>
            <button
              type="button"
              class="small danger"
              disabled={isBusy}
              onClick={() => change(ask({ method: "DELETE", path: `${PASSKEYS}/${passkey_id}` }))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      {hasPasskeys(contract) ? (
        <form class="stack" onSubmit={add}>
          <label class="field">
            <span>Name of the passkey</span>
            <input name="name" maxLength={100} autocomplete="off" placeholder="this laptop" />
          </label>
          {refused === undefined ? null : <Trouble refused={refused} />}
          <div>
            <button type="submit" class="main" disabled={isBusy}>
              Add a passkey
            </button>
          </div>
        </form>
      ) : (
        <p class="hint">This browser has no passkeys.</p>
      )}
    </Card>
  )
}
