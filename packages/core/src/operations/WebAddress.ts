/** Web addresses that callers give. */
import { Effect } from "effect"
import { InvalidInput } from "../work/OperationError.ts"

/** Whether a text is an http or https URL without credentials. */
export const isWebAddress = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") && url.username === "" && url.password === ""
}

/** `InvalidInput` of the field for anything but an http or https address without credentials. */
export const checkWebAddress = (field: string, text: string): Effect.Effect<void, InvalidInput> =>
  isWebAddress(text)
    ? Effect.void
    : Effect.fail(new InvalidInput({ field, message: "expected an http or https address without credentials" }))
