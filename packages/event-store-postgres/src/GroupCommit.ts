/** One transaction, and one round trip, for the requests of many callers. */
import { GroupCommit } from "@millrace/event-sourcing"
import { Fault } from "./Fault.ts"

export const make = <Request, Answer>(options: Omit<GroupCommit.Options<Request, Answer, Fault>, "isOfOne" | "broken">) =>
  GroupCommit.make<Request, Answer, Fault>({
    ...options,
    // The database refused the data of one request
    isOfOne: ({ kind }) => kind === "data",
    broken: (why) =>
      why === "unanswered"
        ? new Fault("other", "No answer")
        : new Fault("closed", "The store was closed", { inDoubt: why === "closedMeanwhile" })
  })
