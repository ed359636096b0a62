"""Contact sheets of every figure and page of the built book, and what can be measured of them.

`problems` is the data. `stage` brings an open page into the state that is looked at, `measure`
measures it, `shots` takes pictures of it, `album` does all of that to a page. `sheets` and `index`
put it on paper, `site` knows the pages. Nothing here builds the book, and nothing judges: whoever
makes a figure opens the sheets.
"""
