export const invariants = (_: ReadonlyArray<unknown>): ReadonlyArray<unknown> => []
