/** Processes, servers and folders of the tests of a file, undone after its last test: the last first. */

const leftovers: Array<() => unknown> = []

export const undoAfterwards = (undo: () => unknown): void => {
  leftovers.push(undo)
}

/** `test/setup.ts` calls this after each file. */
export const undoAll = async (): Promise<void> => {
  for (const undo of leftovers.splice(0).reverse()) await undo()
}
