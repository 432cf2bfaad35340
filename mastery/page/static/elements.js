// The elements of the page: finding them, and making new ones.

const SVG = 'http://www.w3.org/2000/svg';

export const $ = (id) => document.getElementById(id);

// An element; what is given as text is never read as HTML. Of the attributes, `on` has listeners by
// event, and `style` properties; one that is false or not there is left out.
export function make(tag, attributes = {}, ...inside) {
  const element = tag.startsWith('svg:')
    ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...inside.filter((x) => x !== null && x !== undefined));
  return element;
}

function setAttribute(element, name, value) {
  if (name === 'on') {
    for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
  } else if (name === 'style') {
    for (const [key, x] of Object.entries(value)) element.style.setProperty(key, x);
  } else if (value === true) {
    element.setAttribute(name, '');
  } else if (value !== false && value !== null && value !== undefined) {
    element.setAttribute(name, value);
  }
}
