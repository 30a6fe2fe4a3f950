/** The errors of stores after which a retry may succeed. */

const TRANSIENT: ReadonlySet<string> = new Set(["StoreUnavailable", "AppendInDoubt", "Busy", "StateUnavailable"])

/** Whether a retry may succeed after this error. */
export const isTransient = ({ _tag }: { readonly _tag: string }): boolean => TRANSIENT.has(_tag)
