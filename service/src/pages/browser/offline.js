/**
 * The service worker: a reload without a connection opens the offline page instead of the browser's error. It stores the files of that page
 * and nothing else; no answer, and no address of a tap, is ever stored here.
 */
const folder = new URL('./', self.location).pathname
const files = ['offline.html', 'page.css', 'page.js', 'icon.svg', 'lookup.css', 'check.js'].map((name) => folder + name)
/** The page that checks a certificate keeps itself here, in the same cache. */
const checkPage = '/check'
const pages = ['/01/', '/token/', '/tap']

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches
      .open(folder)
      .then((cache) => cache.addAll(files))
      .then(() => self.skipWaiting()),
  )
})

self.addEventListener('activate', (event) => {
  const others = caches.keys().then((names) => names.filter((name) => name !== folder))
  event.waitUntil(others.then((names) => Promise.all(names.map((name) => caches.delete(name)))))
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== self.location.origin) return
  const kept = keptFor(request.mode, pathname)
  if (kept !== undefined) event.respondWith(fetch(request).catch(() => keptResponse(kept)))
})

/** Returns the file that stands for a request while there is no connection. */
function keptFor(mode, pathname) {
  if (files.includes(pathname)) return pathname
  if (mode !== 'navigate') return undefined
  if (pathname === checkPage) return checkPage
  return pages.some((page) => pathname.startsWith(page)) ? `${folder}offline.html` : undefined
}

/** The language of the request does not matter: each file is kept once. */
async function keptResponse(path) {
  return (await caches.match(path, { ignoreVary: true })) ?? Response.error()
}
