"""Draw pictures without a plotting library.

colours    how each program looks, everywhere
axes       SVG in the page's light or dark colours, and its axes
pictures   a curriculum as text and SVG; learning curves as SVG and as one line of text
static_page   an HTML page without scripts
"""
