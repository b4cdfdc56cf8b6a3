/** What GraphiQL keeps for the next visit: tabs, history, the look of the page. Never a header and never a key. */

/** A `Storage` for GraphiQL, whose first visit finds `examples`. Where the browser keeps nothing, this does neither. */
export function keylessStorage(examples) {
  const kept = browserStorage()
  const names = () => Object.keys(kept).filter((name) => name.startsWith('graphiql:'))
  return {
    getItem(name) {
      const part = /^graphiql:(query|variables)$/.exec(name)?.[1]
      return part === undefined ? kept.getItem(name) : (openTab(kept, examples)[part] ?? null)
    },
    setItem(name, value) {
      const text = withoutHeaders(value)
      if (!keyLike.test(text)) kept.setItem(name, text)
    },
    removeItem: (name) => kept.removeItem(name),
    clear() {
      for (const name of names()) kept.removeItem(name)
    },
    get length() {
      return names().length
    },
  }
}

/** GraphiQL shows these beside its list of tabs, and adds a tab to the list when they are of none: they are always of the open one. */
function openTab(kept, examples) {
  try {
    const { tabs, activeTabIndex } = JSON.parse(kept.getItem('graphiql:tabState'))
    return tabs[activeTabIndex]
  } catch {
    return examples[0]
  }
}

/** Someone may type a key into a variable or a query, too: such a value is not kept at all. */
const keyLike = /ts_live_|bearer\s+[\w-]/i

/** GraphiQL's history would keep the headers of every run. */
function withoutHeaders(value) {
  try {
    return JSON.stringify(JSON.parse(value), (name, inner) => (name === 'headers' ? null : inner))
  } catch {
    return value
  }
}

function browserStorage() {
  try {
    return globalThis.localStorage
  } catch {
    return { getItem: () => null, setItem() {}, removeItem() {} } // refused by a setting of the browser
  }
}
