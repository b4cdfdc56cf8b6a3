/** What is made of an object that many callers share, made once as long as the object is asked about: a bounded memory by identity. */

const most = 2_000

export function remembering<From extends object, To>(make: (from: From) => To): (from: From) => To {
  const made = new Map<From, To>()
  return (from) => {
    const known = made.get(from)
    if (known !== undefined) return known
    const value = make(from)
    if (made.size >= most) made.delete(made.keys().next().value as From)
    made.set(from, value)
    return value
  }
}
