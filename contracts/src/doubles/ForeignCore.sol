// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// A double of the public deployment has its read interface and events, with free setters for tests. It has no getAssets, no metadataHash
/// and no reads by tag beyond getTokenByTag; its ERC-165 answers accordingly.
contract ForeignCore {
    struct Asset {
        address owner;
        uint64 timestamp;
        uint8 state;
        uint8 flags;
        uint16 reserved;
    }

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event AssetMinted(uint256 indexed tokenId, address indexed to, bytes32 metadata);
    event TagBound(uint256 indexed tokenId, bytes32 indexed tagHash);
    event StateChanged(uint256 indexed tokenId, uint8 from, uint8 to, address actor);
    event AssetResold(uint256 indexed tokenId, address indexed from, address indexed to);

    mapping(uint256 tokenId => Asset) private _assets;
    mapping(bytes32 tagHash => uint256) public getTokenByTag;

    function getAsset(uint256 tokenId)
        external
        view
        returns (address assetOwner, uint64 timestamp, uint8 state, uint8 flags, uint16 reserved)
    {
        Asset memory asset = _assets[tokenId];
        return (asset.owner, asset.timestamp, asset.state, asset.flags, asset.reserved);
    }

    /// ERC-165 and ERC-721 only.
    function supportsInterface(bytes4 interfaceId) external pure returns (bool) {
        return interfaceId == 0x01ffc9a7 || interfaceId == 0x80ac58cd;
    }

    /// Any record, without an event and without a rule.
    function setAsset(uint256 tokenId, address owner, uint64 timestamp, uint8 state, uint8 flags, uint16 reserved)
        external
    {
        _assets[tokenId] = Asset(owner, timestamp, state, flags, reserved);
    }

    function mint(address to, uint256 tokenId, bytes32 metadata) external {
        _assets[tokenId] = Asset(to, uint64(block.timestamp), 1, 0, 0);
        emit Transfer(address(0), to, tokenId);
        emit AssetMinted(tokenId, to, metadata);
        emit StateChanged(tokenId, 0, 1, msg.sender);
    }

    function bindTag(uint256 tokenId, bytes32 tagHash) external {
        getTokenByTag[tagHash] = tokenId;
        emit TagBound(tokenId, tagHash);
        changeState(tokenId, 2);
    }

    function changeState(uint256 tokenId, uint8 state) public {
        Asset storage asset = _assets[tokenId];
        emit StateChanged(tokenId, asset.state, state, msg.sender);
        asset.state = state;
        asset.timestamp = uint64(block.timestamp);
    }

    function setFlags(uint256 tokenId, uint8 flags) external {
        _assets[tokenId].flags = flags;
    }

    function resell(uint256 tokenId, address to) external {
        Asset storage asset = _assets[tokenId];
        emit Transfer(asset.owner, to, tokenId);
        emit AssetResold(tokenId, asset.owner, to);
        asset.owner = to;
        asset.timestamp = uint64(block.timestamp);
    }
}
