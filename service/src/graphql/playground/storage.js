/** The storage of GraphiQL across visits: tabs, history, settings. It never holds a header or a key. */

/** Returns a `Storage` for GraphiQL that holds `examples` at the first visit. Without a browser storage it keeps nothing. */
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

/** Returns the open tab. GraphiQL adds a tab for a query or variables that belong to no tab of its list. */
function openTab(kept, examples) {
  try {
    const { tabs, activeTabIndex } = JSON.parse(kept.getItem('graphiql:tabState'))
    return tabs[activeTabIndex]
  } catch {
    return examples[0]
  }
}

/** Matches a key that was typed into a query or variables. Such a text is not kept at all. */
const keyLike = /ts_live_|bearer\s+[\w-]/i

/** Removes the headers of each run, which GraphiQL's history would keep. */
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
    return { getItem: () => null, setItem() {}, removeItem() {} } // blocked by a browser setting
  }
}
