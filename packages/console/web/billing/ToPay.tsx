/** What a payer has to do: read an instruction, approve at the gateway, or hand a secret to the gateway's own script. */
import { Code } from "../Parts.tsx"

export interface Means {
  readonly client_secret?: string
  readonly approve_url?: string
  readonly instruction?: string
}

export const ToPay = ({ means: { approve_url, client_secret, instruction } }: { readonly means: Means }) => (
  <>
    {instruction === undefined ? null : <p>{instruction}</p>}
    {approve_url === undefined ? null : (
      <p>
        <a href={approve_url} rel="noreferrer" target="_blank">
          Pay at the gateway
        </a>
      </p>
    )}
    {client_secret === undefined ? null : <Code text={client_secret} label="the client secret of the payment" />}
  </>
)
