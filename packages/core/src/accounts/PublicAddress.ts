/** Where people reach this host, and how it calls itself, in mails that it sends by itself. A host without links in such mails has none. */
import { Context, type Effect } from "effect"

export class PublicAddress extends Context.Service<
  PublicAddress,
  {
    /** The address under which people reach this host, such as `https://api.example.com`. It is never taken from a request. */
    readonly url: Effect.Effect<URL>
    /** The name of the service, in one line. */
    readonly service: string
  }
>()("@millrace/core/accounts/PublicAddress") {}
