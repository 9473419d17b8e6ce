/** Members that share a name, or are joined, are one group; and so on through all that they share. */
export interface Groups<M extends object> {
  add(member: M, names: readonly string[]): void
  join(a: M, b: M): void
  /** The group of a member, the same object for all of them until another is added or joined. */
  groupOf(member: M): ReadonlySet<M>
}

export function createGroups<M extends object>(): Groups<M> {
  const groupOf = new Map<M, Set<M>>()
  const byName = new Map<string, M>()
  const join = (a: M, b: M) => {
    const [one, other] = [groupOf.get(a), groupOf.get(b)]
    if (!one || !other || one === other) return
    const [small, large] = one.size < other.size ? [one, other] : [other, one]
    for (const member of small) {
      large.add(member)
      groupOf.set(member, large)
    }
  }
  return {
    add(member, names) {
      groupOf.set(member, new Set([member]))
      for (const name of names) {
        const first = byName.get(name)
        if (first) join(first, member)
        else byName.set(name, member)
      }
    },
    join,
    groupOf: (member) => groupOf.get(member) ?? new Set(),
  }
}
